"""The binding keeps to its specification (_core.pyi), and the catalogue is whole."""

from __future__ import annotations

import ast
from importlib import resources

from emu import _core, catalogue
from emu.catalogue import CHECKS
from emu.structures import VECTORS


def stub() -> ast.Module:
    return ast.parse((resources.files("emu") / "_core.pyi").read_text("utf-8"))


def members(nodes: list[ast.stmt]) -> set[str]:
    functions = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    values = {node.target.id for node in nodes if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}
    return functions | values


def test_module_has_what_the_stub_says_and_nothing_else() -> None:
    public = {name for name in dir(_core) if not name.startswith("_")}
    assert public == members(stub().body)


def test_classes_have_what_the_stub_says_and_nothing_else() -> None:
    classes = [node for node in stub().body if isinstance(node, ast.ClassDef)]
    assert {node.name for node in classes} == {"Machine", "RunEnd"}
    for node in classes:
        public = {name for name in dir(getattr(_core, node.name)) if not name.startswith("_")}
        assert public == members(node.body) - {"__init__"}


def test_record_layout_is_the_documented_one() -> None:
    dtype = _core.RECORD_DTYPE
    fields = [(name, dtype.fields[name][0].str) for name in dtype.names or ()]  # type: ignore[index]
    assert fields == [
        ("cycles", "<u8"), ("instructions", "<u8"), ("id", "<u2"), ("kind", "|u1"), ("held", "|u1"), ("span", "<u4"),
        ("a", "<u8"), ("b", "<u8"), ("c", "<u8"), ("d", "<u8"),
    ]  # fmt: skip
    assert dtype.itemsize == 56


def test_every_check_says_what_where_and_which_fault() -> None:
    assert len(catalogue) == len(CHECKS), "two checks share a name"
    for check in CHECKS:
        family, dot, rule = check.name.partition(".")
        assert family, check.name
        assert dot, check.name
        assert rule, check.name
        assert " " in check.says, check.name
        assert len(check.sdm) > 3, check.name
        assert check.vector in VECTORS, check.name
        assert len(set(check.operands)) == len(check.operands), "operands that share a label cannot be told apart"


def test_kinds_of_cost_events() -> None:
    kinds = {event["name"]: event["kind"] for event in _core.cost_events()}
    assert set(kinds.values()) == {"act", "arm", "instruction"}
    assert (kinds["comparison"], kinds["iret_outer"], kinds["alu"]) == ("act", "arm", "instruction")


def test_build_info_names_the_compiler() -> None:
    assert _core.build_info()["compiler"].split()[0] in {"gcc", "clang"}
