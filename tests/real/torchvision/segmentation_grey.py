from segmentation import make_loader as make


def make_loader():
    return make(mode="L")
