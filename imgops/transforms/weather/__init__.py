"""Shadow, fog, rain, snow and sun flares."""

from imgops.transforms.weather.transforms import *
