"""What the benchmark of scale computes from its figures."""

from bench.scale import FULL, exponent, scaled, table


def figure(cpu_s: float, peak_mb: float = 100.0, seconds: float = 1.0) -> dict[str, float]:
    return {"cpu_s": cpu_s, "peak_mb": peak_mb, "seconds": seconds}


def test_the_exponent_is_1_where_time_grows_as_the_documents_do_and_2_where_it_grows_as_their_square():
    assert exponent({1_000: figure(3.0), 2_000: figure(7.0), 4_000: figure(3.0 * 4)}) == "1.00"
    assert exponent({1_000: figure(3.0), 4_000: figure(3.0 * 4**2)}) == "2.00"


def test_one_size_tells_nothing_of_growth():
    assert exponent({1_000: figure(3.0)}) == ""


def test_a_smaller_dataset_has_the_proportions_of_the_full_one():
    assert [scaled(number, FULL["documents"] // 2) for number in FULL.values()] == [10_550, 1_295, 199, 184]


def test_the_table_has_a_column_per_size_and_leaves_empty_what_was_not_measured():
    measured = {1_000: {"download": figure(1.0, 99.6), "index": figure(2.0)}, 4_000: {"index": figure(8.0, 250.0, 9.4)}}
    assert table(measured).splitlines()[:4] == [
        "| stage | 1,000: CPU s | 4,000: CPU s | exponent | 1,000: MB | 4,000: MB | 4,000: s |",
        "|---|---:|---:|---:|---:|---:|---:|",
        "| download | 1.0 |  |  | 100 |  |  |",
        "| index | 2.0 | 8.0 | 1.00 | 100 | 250 | 9 |",
    ]
