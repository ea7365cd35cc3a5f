"""Settings of a process that decides batches of traffic and nothing else: of its collector of cycles, and of its allocator."""

import gc
from typing import Final

from gatewayfilter.allocator import AllocatorOption, tune_allocator

OBJECTS: Final = 200_000
"""Net new containers between two collections: a batch of 20,000 messages has three or four of each, and frees them all."""
KEPT_BYTES: Final = 1 << 28
"""Free memory at the end of the heap that stays with the process: that of a batch, and of what is fetched ahead."""
MAPPED_BYTES: Final = 1 << 25
"""The smallest allocation with pages of its own, which go back when it is freed: the largest that mallopt(3) allows for."""


def set_up_process() -> None:
    """Sets both up; for processes that do nothing else. Nothing depends on it but CPU time: a tenth and more of a worker's.

    Each batch makes some hundred thousand objects and frees them. The collector went through them several times, and found
    nothing; objects without cycles are freed as ever. And the C library gave their pages back, which the kernel clears when
    the next batch asks for them. Where the C library has no such setting, that stays so.
    """
    gc.set_threshold(OBJECTS, *gc.get_threshold()[1:])
    tune_allocator({AllocatorOption.TRIM_THRESHOLD: KEPT_BYTES, AllocatorOption.MMAP_THRESHOLD: MAPPED_BYTES})
