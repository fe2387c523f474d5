"""tt-exalens' way to inject instructions, which only a boot mode not used on Blackhole needs."""

from bhemu.errors import NotModelled

from .coordinate import OnChipCoordinate


class TensixDebug:
    """Refused: the tests skip the boot mode EXALENS on Blackhole."""

    def __init__(self, coordinate: OnChipCoordinate) -> None:
        self.device = coordinate.device
        raise NotModelled(
            "injecting Tensix instructions through the debug port",
            hint="use the boot mode BRISC",
        )
