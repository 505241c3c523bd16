"""Who executes: an ordered, bounded, parallel map. Knows nothing of samples, data sets or batches.

    orders ──▶ drive ──fill──▶ window ──send──▶ worker 0 … W-1 ──▶ inbox ──▶ window ──re-ordered──▶ results
               (consumer's thread)                (threads or processes)

Read in this order: `inline` is the meaning of every runner in ten lines; `window` decides who gets which order;
`drive` is the consumer's loop; `threads` and `processes` are the two crews that it drives. Below the processes:
`pool` starts and ends them, `worker` is what runs in one, `wire` carries messages, `transport` results (`slots`: in
shared memory), `parcel` the task, `carry` exceptions, and `board` keeps the last words of a worker that cannot speak any
more.
"""

from headrace.engine.run.inline import InlineRunner
from headrace.engine.run.processes import ProcessRunner
from headrace.engine.run.slots import SlotTransport
from headrace.engine.run.threads import ThreadRunner
from headrace.engine.run.transport import Channel, PipeTransport, Sender, Transport

__all__ = [
    "Channel",
    "InlineRunner",
    "PipeTransport",
    "ProcessRunner",
    "Sender",
    "SlotTransport",
    "ThreadRunner",
    "Transport",
]
