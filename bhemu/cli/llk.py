"""`bhemu llk`: how to run tt-llk's own tests on the emulated tile."""

from pathlib import Path

import click

_STAND_IN = Path(__file__).parent.parent / "llk" / "stand_in"


@click.command("llk")
@click.option("--path", is_flag=True, help="print only the folder to put on PYTHONPATH")
def command(path: bool) -> None:
    """Show how to run tt-llk's tests on an emulated tile.

    The tests import tt-exalens to reach a device. With the printed folder first on PYTHONPATH they
    import a stand-in of the same name, which runs an emulated tile.
    """
    if path:
        click.echo(_STAND_IN)
        return
    click.echo(
        "cd tt-llk/tests/python_tests\n"
        "PYTHONPATH=$(bhemu llk --path) pytest test_matmul.py\n"
        "options of the tile: BHEMU_LLK=reference=ttsim,ub=warn,quantum=100 (docs/llk.md)\n"
        "a sample of all tests on all processors: scripts/llk_sweep.py of a checkout of bhemu"
    )
