from collections.abc import Sequence

def main_run(
    blocks: list[tuple[str, int]],
    weights: Sequence[float],
    threshold: float,
    least: float,
    max_density: float,
    link_weight: float,
    ideograph_weight: float,
) -> tuple[int, int]: ...
def split(blocks: Sequence[tuple[str, int]], start: int, end: int, link_heavy: float) -> tuple[list[str], list[str]]: ...
