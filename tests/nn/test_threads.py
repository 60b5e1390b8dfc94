from __future__ import annotations

from threading import Event, Thread

import pytest
import torch

from nodecopy.nn.training import LARGE, choose_threads, map_on_threads, one_thread_per_operation


@pytest.fixture(autouse=True)
def two_threads() -> object:
    n_threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(n_threads)


def test_operations_have_one_thread_inside_the_block_only() -> None:
    with one_thread_per_operation() as n_before:
        assert (n_before, torch.get_num_threads()) == (2, 1)
    assert torch.get_num_threads() == 2


def test_only_large_networks_share_operations_among_threads() -> None:
    for n_entries, n_threads in ((LARGE - 1, 1), (LARGE, 2)):
        with choose_threads(n_entries, torch.device("cpu")):
            assert torch.get_num_threads() == n_threads
    with choose_threads(0, torch.device("cuda")):
        assert torch.get_num_threads() == 2


def test_parts_run_at_the_same_time_with_one_thread_each() -> None:
    started = [Event(), Event()]

    def wait_for_the_other(part: int, stop: Event) -> tuple[int, int]:
        started[part].set()
        assert started[1 - part].wait(timeout=60)
        return part, torch.get_num_threads()

    assert map_on_threads(wait_for_the_other, [0, 1]) == [(0, 1), (1, 1)]
    assert torch.get_num_threads() == 2


def test_an_error_in_one_part_stops_the_others() -> None:
    def fail_or_wait(part: int, stop: Event) -> bool:
        if part == 0:
            raise ValueError("part 0")
        return stop.wait(timeout=60)

    with pytest.raises(ValueError, match="part 0"):
        map_on_threads(fail_or_wait, [0, 1])


def test_blocks_of_two_threads_that_overlap_leave_no_trace() -> None:
    """Without the count of open blocks, the second thread left one thread for all threads to come."""
    entered, leave = Event(), Event()

    def stay_inside() -> None:
        with one_thread_per_operation():
            entered.set()
            leave.wait(timeout=60)

    other = Thread(target=stay_inside)
    with one_thread_per_operation():
        other.start()
        assert entered.wait(timeout=60)
    assert torch.get_num_threads() == 2
    leave.set()
    other.join()
    later: list[int] = []
    new = Thread(target=lambda: later.append(torch.get_num_threads()))
    new.start()
    new.join()
    assert later == [2]
