"""Models that run in this process through torch."""

from typing import Annotated

from pydantic import Field, model_validator

from rag_arena.params.sections import Positive, Section


class Checkpoint(Section):
    """Which weights, and on what they run: all of it can change the last bits of a vector or score."""

    model: Annotated[str, Field(min_length=1)] = Field(description="folder of the model, or its name on the Hugging Face Hub")
    revision: str = Field("main", description="branch, tag or commit on the Hub; not read for a folder")
    max_tokens: Annotated[int, Field(ge=8)] = Field(description="tokens read of a text (of question and text); the rest is cut")
    batch_size: Positive = Field(description="texts computed at once")
    device: Annotated[str, Field(pattern=r"^(cpu|(cuda|npu|mps)(:\d+)?)$")] = Field(
        description="where it is computed: cpu, cuda:0, cuda:1, mps"
    )
    use_fp16: bool = Field(description="half precision, on a GPU only")
    threads: Positive = Field(description="computing threads on cpu")

    @model_validator(mode="after")
    def _has_half_precision(self) -> "Checkpoint":
        if self.use_fp16 and self.device == "cpu":
            raise ValueError("use_fp16 needs a GPU; set it to false, or device to cuda:0")
        return self
