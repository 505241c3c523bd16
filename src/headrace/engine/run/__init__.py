"""Who executes: an ordered, bounded, parallel map. Knows nothing of samples, data sets or batches.

    orders ──▶ drive ──fill──▶ window ──offer──▶ worker 0 … W-1 ──▶ inbox ──▶ window ──re-ordered──▶ results
               (consumer's thread)                (threads or processes)

Read in this order: `inline` is the meaning of every runner in ten lines; `window` knows which orders are out;
`drive` is the consumer's loop; `threads` and `processes` are the two crews that it drives, and `host` is the second in
one process. Orders are laid out for whoever is free first (`shared_orders`), so a slow one delays only its own result.
Below the processes: `pool` starts and ends them (`fork_server`: readily), `worker` is what runs in one (`one_thread`), `wire` carries messages, `transport` results
(`slots`: in shared memory), `parcel` the task (`plain_columns`: its long lists), `carry` exceptions, and `board` keeps the last words of a worker that
cannot speak any more.
"""

from headrace.engine.run.host import HostRunner
from headrace.engine.run.inline import InlineRunner, no_mark
from headrace.engine.run.processes import ProcessRunner
from headrace.engine.run.slots import SlotTransport
from headrace.engine.run.threads import ThreadRunner
from headrace.engine.run.transport import Channel, PipeTransport, Sender, Transport

__all__ = [
    "Channel",
    "HostRunner",
    "InlineRunner",
    "PipeTransport",
    "ProcessRunner",
    "Sender",
    "SlotTransport",
    "ThreadRunner",
    "Transport",
    "no_mark",
]
