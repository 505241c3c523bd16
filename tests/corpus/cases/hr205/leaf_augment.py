"""Augmentations for the leaf pictures: each is drawn with its own random.Random, so that tests can seed them."""

import random

from PIL import ImageEnhance, ImageOps


class Compose:
    def __init__(self, steps):
        self.steps = steps

    def __call__(self, picture):
        for step in self.steps:
            picture = step(picture)
        return picture


class Mirror:
    def __init__(self, share, seed=0):
        self.share = share
        self._dice = random.Random(seed)

    def __call__(self, picture):
        return ImageOps.mirror(picture) if self._dice.random() < self.share else picture


class Brightness:
    def __init__(self, low, high, seed=1):
        self.low, self.high = low, high
        self._dice = random.Random(seed)

    def __call__(self, picture):
        return ImageEnhance.Brightness(picture).enhance(self._dice.uniform(self.low, self.high))
