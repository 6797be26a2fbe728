"""The configuration as flat parameters."""

from jevexp.tracking.mlflow.labels import params


def test_leaves_get_dotted_names() -> None:
    found = params({"backend": {"server": {"context": 4096, "gpu": True}}, "outputs": "runs"})

    assert found == {
        "backend.server.context": "4096",
        "backend.server.gpu": "true",
        "outputs": "runs",
    }


def test_a_list_is_one_leaf_as_json() -> None:
    assert params({"files": [{"path": "ä.jsonl"}]}) == {"files": '[{"path": "ä.jsonl"}]'}


def test_what_is_null_is_left_out() -> None:
    assert params({"gguf": None, "server": {}}) == {}


def test_what_is_too_long_to_read_is_left_out() -> None:
    assert params({"long": "x" * 501, "short": "x" * 500}) == {"short": "x" * 500}


def test_keys_that_mlflow_refuses_are_replaced() -> None:
    assert params({"kwargs": {"a[0]": 1, "b/c": 2}}) == {"kwargs.a_0_": "1", "kwargs.b_c": "2"}


def test_a_password_in_an_address_of_an_old_configuration_is_not_shown() -> None:
    found = params({"caps": {"ledger_url": "postgresql://me:hunter2@h/d?password=hunter2"}})
    assert found == {"caps.ledger_url": "postgresql://me:***@h/d?password=***"}
