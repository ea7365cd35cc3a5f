from collections.abc import Buffer

def scan(
    data: Buffer, offsets: Buffer
) -> tuple[int, bytearray, bytearray, bytes, bytearray, bytearray, list[list[bytes]], bytearray, bytearray, bytearray]: ...
