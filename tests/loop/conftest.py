import pytest
import torch


@pytest.fixture(autouse=True, scope="package")
def one_thread():
    """Batches of three rows gain nothing from a second thread, and on a busy machine wait for it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
