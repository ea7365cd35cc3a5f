from gatewayfilter.model import Evidence

def unpack(
    value: bytes, start: int, fixed: int, evidence_kind: type[Evidence], evidence_row: tuple[str, ...]
) -> tuple[float, float, float, float, bytes, list[str], dict[str, float], tuple[Evidence, ...]]: ...
