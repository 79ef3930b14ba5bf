# `snakemake --cores 4` starts here; the rules live in workflow/.
include: "workflow/Snakefile"


workflow.default_target = "all"
