"""The way of a batch from the loader to whoever computes: pinned memory, a device, another framework's arrays."""

from headrace.engine.transfer.convert import to_jax, to_numpy
from headrace.engine.transfer.device import DeviceTransfer, Normalize
from headrace.engine.transfer.pin import pin
from headrace.engine.transfer.tensorflow import signature_of, to_tf

__all__ = ["DeviceTransfer", "Normalize", "pin", "signature_of", "to_jax", "to_numpy", "to_tf"]
