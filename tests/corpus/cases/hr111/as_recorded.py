import tracked_crops


def make_loader():
    return tracked_crops.make_loader(remove=0)
