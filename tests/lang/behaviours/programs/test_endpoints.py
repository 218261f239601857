"""Endpoints as programs use them: the default one, and what can be asked of one."""

from __future__ import annotations

import sgc


def test_set_default_backend_is_where_runs_without_one_go(recorded):
    endpoint = recorded("here")

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("g")

    sgc.set_default_backend(endpoint)
    try:
        assert program.run()["g"] == "here"
        assert program.run_batch([{}])[0]["g"] == "here"
    finally:
        sgc.set_default_backend(None)


def test_flush_cache_and_get_server_info_of_the_given_backend(served):
    endpoint = served("some/model")
    assert sgc.flush_cache(endpoint) == 0
    assert sgc.get_server_info(endpoint)["tokenizer_path"] == "some/model"


def test_flush_cache_and_get_server_info_of_the_default_backend(served):
    sgc.set_default_backend(served("some/model"))
    try:
        assert sgc.flush_cache() == 0
        assert sgc.get_server_info()["tokenizer_path"] == "some/model"
    finally:
        sgc.set_default_backend(None)


def test_attributes_of_an_endpoint_that_programs_read(served):
    endpoint = served("some/model")
    assert endpoint.model_info["model_path"] == "some/model"
    assert endpoint.get_model_name() == "some/model"
    assert endpoint.endpoint.get_model_name() == "some/model"
    assert endpoint.get_server_info()["tokenizer_path"] == "some/model"
    assert endpoint.get_chat_template() == endpoint.chat_template
