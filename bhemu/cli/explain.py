"""`bhemu explain`: what a word, an instruction, a field, an address, a register or a rule is."""

import json

import click

from bhemu.cli import output
from bhemu.cli.options import json_option
from bhemu.errors import EXIT_OK


@click.command("explain")
@click.argument("names", nargs=-1, required=True, metavar="WORD|FIELD|ADDRESS|RULE|NAME...")
@json_option
def command(names: tuple[str, ...], as_json: bool) -> int:
    """Say what something is: unit, place, meaning, and the chapter it comes from.

    A number is an address, a Tensix word or a core's instruction, or several of these. A name is an
    instruction, a configuration field, a register, a rule of an error, a part of the state, a data
    format, a class or condition of STALLWAIT, a CSR or a GPR of tt-llk.
    """
    from bhemu.debug.explain import explain

    found = [one for name in names for one in explain(name)]
    if as_json:
        output.say(json.dumps([one.as_dict() for one in found], indent=2))
    else:
        for one in found:
            for line in one.as_text():
                output.say(line)
    return EXIT_OK
