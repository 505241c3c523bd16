"""What goes into one end of a wire comes out of the other, frame by frame, whatever its parts."""

import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.run.wire import Wire


def wires():
    ours, theirs = socket.socketpair()
    return Wire(ours), Wire(theirs)


@given(frames=st.lists(st.lists(st.binary(max_size=200), max_size=5), max_size=5))
def test_frames_arrive_as_they_were_sent(frames):
    ours, theirs = wires()
    for frame in frames:
        ours.send(frame)
    ours.finish()
    assert [[bytes(part) for part in theirs.receive()] for _ in frames] == frames
    with pytest.raises(EOFError):
        theirs.receive()
    ours.close()
    theirs.close()


def test_frames_larger_than_any_buffer_of_the_kernel_arrive():
    ours, theirs = wires()
    frame = [bytes([i]) * (i * 1000) for i in range(256)] * 5  # 163 MB in more parts than one call takes
    sender = threading.Thread(target=ours.send, args=(frame,))
    sender.start()
    received = theirs.receive()
    sender.join()
    assert len(received) == len(frame)
    assert all(part == twin for part, twin in zip(received, frame, strict=True))
    assert not received[1].readonly
    ours.close()
    theirs.close()


def test_a_sender_that_nobody_reads_may_give_up():
    ours, theirs = wires()

    class GiveUpError(Exception):
        pass

    def stalled():
        raise GiveUpError

    with pytest.raises(GiveUpError):
        ours.send([bytes(10_000_000)], stalled)
    ours.close()
    with pytest.raises(EOFError):  # in the middle of a frame
        theirs.receive()
    theirs.close()


def test_cutting_wakes_a_blocked_receiver():
    ours, theirs = wires()
    outcome = []

    def receive():
        try:
            ours.receive()
        except EOFError as error:
            outcome.append(error)

    receiver = threading.Thread(target=receive)
    receiver.start()
    ours.cut()
    receiver.join()
    assert len(outcome) == 1
    ours.close()
    theirs.close()
