"""An option of the table is a key of PROGRAM.toml, a flag, a parameter of sweeps, an argument."""

from pathlib import Path
from typing import Annotated

import click
import pytest
from click.testing import CliRunner
from script_module import script

from bhemu import Chip, InputError, Program, Tile
from bhemu.cli import COMMANDS, main, new
from bhemu.cli.options import flag, run_options
from bhemu.program import options
from bhemu.program.cli_overrides import with_options
from bhemu.program.options import Option, Words
from bhemu.program.schema import load_program
from bhemu.sweeps.spec import load_sweep

ADD1 = Path(__file__).parents[1] / "elfs" / "add1"
# Imported now: a command keeps the options that are declared when it is
PARAMS = {
    name: command.params
    for name in COMMANDS
    if (command := main.get_command(click.Context(main), name)) is not None
}
FLAVOUR = Option(Words("sweet", "sour"), "sweet", ("run", "flag"), "how it tastes")


class Flavoured(options.TileOptions, total=False):
    flavour: Annotated[str, FLAVOUR]


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(options.OPTIONS, "flavour", FLAVOUR)


def program(folder: Path, run: str) -> Path:
    text = (ADD1 / "PROGRAM.toml").read_text()
    path = folder / "PROGRAM.toml"
    path.write_text(f"{text}{run}\n" if "[run]" in text else f"{text}\n[run]\n{run}\n")
    for file in ADD1.iterdir():
        if file.suffix in (".elf", ".npy"):
            (folder / file.name).write_bytes(file.read_bytes())
    return path


def test_a_program_says_it(tmp_path: Path) -> None:
    assert load_program(program(tmp_path, 'flavour = "sour"')).options["flavour"] == "sour"
    with pytest.raises(InputError, match='flavour = "salt"') as caught:
        load_program(program(tmp_path, 'flavour = "salt"'))
    assert "sweet, sour" in caught.value.hint
    with pytest.raises(InputError, match="unknown key flavor") as caught:
        load_program(program(tmp_path, 'flavor = "sour"'))
    assert "did you mean flavour?" in caught.value.hint


def test_a_flag_says_it_and_goes_before_the_program(tmp_path: Path) -> None:
    command = click.command()(run_options(lambda **values: print(values["flavour"])))
    assert CliRunner().invoke(command, ["--flavour", "sour"]).output == "sour\n"
    assert CliRunner().invoke(command, ["--flavour", "salt"]).exit_code == 2
    assert "how it tastes" in CliRunner().invoke(command, ["--help"]).output
    said = load_program(program(tmp_path, 'flavour = "sour"'))
    assert with_options(said, {"flavour": "sweet"}).options["flavour"] == "sweet"


def test_a_sweep_goes_over_it(tmp_path: Path) -> None:
    path = tmp_path / "SWEEP.toml"
    text = 'sweep = 1\nprogram = "x"\n[parameters]\nflavour = '
    path.write_text(text + '["sweet", "sour"]\n')
    assert load_sweep(path).parts[0].parameters == {"flavour": ["sweet", "sour"]}
    path.write_text(text + '["salt"]\n')
    with pytest.raises(InputError, match="flavour = 'salt' is not known"):
        load_sweep(path)


def test_a_constructor_takes_it() -> None:
    assert options.filled(Flavoured, {}, "Tile")["flavour"] == "sweet"
    assert options.filled(Flavoured, {"flavour": "sour"}, "Tile")["flavour"] == "sour"
    with pytest.raises(InputError, match="flavour = 'salt' is not known"):
        options.filled(Flavoured, {"flavour": "salt"}, "Tile")


def test_the_page_and_a_new_program_name_it() -> None:
    page = script("scripts/make_options.py").page()
    assert '| `flavour` | `"sweet"`, `"sour"` | how it tastes |' in page
    line = next(s for s in new.template(Path("x.toml"), "elf").splitlines() if "flavour" in s)
    assert line.split() == '# flavour = "sweet" # how it tastes: sweet sour'.split()


def test_a_flag_has_dashes() -> None:
    command = click.command()(flag("stop_after", FLAVOUR)(lambda **values: print(values)))
    done = CliRunner().invoke(command, ["--stop-after", "sour"])
    assert done.output == "{'stop_after': 'sour'}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_no_two_options_of_a_command_have_one_name(name: str) -> None:
    """Of the table, of the command: where they meet, one of them needs another `flag=`."""
    params = PARAMS[name]
    given = [one for one in params if isinstance(one, click.Option)]
    flags = [flag for one in given for flag in (*one.opts, *one.secondary_opts)]
    for some in ([one.name for one in params], flags):
        assert [one for one in some if some.count(one) > 1] == []


@pytest.mark.parametrize("machine", [Tile, Chip])
def test_another_argument_is_an_error(machine: type) -> None:
    with pytest.raises(TypeError, match=rf"{machine.__name__}\(\) got .* argument 'flavour'"):
        machine(flavour="sour")
    with pytest.raises(TypeError, match="flavour"):
        Program.load(ADD1).launch(flavour="sour")


@pytest.mark.parametrize("machine", [Tile, Chip])
def test_help_has_every_argument(machine: type) -> None:
    import inspect

    shown = inspect.signature(machine).parameters
    table = options.TileOptions if machine is Tile else options.ChipOptions
    assert set(table.__annotations__) == set(shown) - {"tiles"}
    for name, option in options.declared(table).items():
        assert shown[name].default == option.default
        base = machine if machine is Tile else machine.__base__
        assert f"{name}: " in (base.__doc__ or "")
