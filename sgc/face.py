"""Every name that programs use of `sgc`, imported when the first of them is used.

Programs write `import sgc`; nothing imports this module but `sgc/__init__.py`. `x as x` says to
type checkers that a name is for others.
"""

from sgc.errors import SgcError as SgcError
from sgc.errors import ToolError as ToolError
from sgc.lang.choices import ChoicesDecision as ChoicesDecision
from sgc.lang.choices import ChoicesSamplingMethod as ChoicesSamplingMethod
from sgc.lang.choices import greedy_token_selection as greedy_token_selection
from sgc.lang.choices import joint as joint
from sgc.lang.choices import token_length_normalized as token_length_normalized
from sgc.lang.choices import (
    unconditional_likelihood_normalized as unconditional_likelihood_normalized,
)
from sgc.lang.group import ProgramStateGroup as ProgramStateGroup
from sgc.lang.maps import MappedStates as MappedStates
from sgc.lang.maps import map as map
from sgc.lang.state import ProgramState as ProgramState
from sgc.lang.table import join as join
from sgc.lang.table import table as table
from sgc.lang.tools import Tool as Tool
from sgc.lang.tools import tool as tool
from sgc.lang.turns import turns as turns
from sgc.lang.words import assistant as assistant
from sgc.lang.words import assistant_begin as assistant_begin
from sgc.lang.words import assistant_end as assistant_end
from sgc.lang.words import gen as gen
from sgc.lang.words import gen_int as gen_int
from sgc.lang.words import gen_string as gen_string
from sgc.lang.words import image as image
from sgc.lang.words import role as role
from sgc.lang.words import select as select
from sgc.lang.words import separate_reasoning as separate_reasoning
from sgc.lang.words import system as system
from sgc.lang.words import system_begin as system_begin
from sgc.lang.words import system_end as system_end
from sgc.lang.words import user as user
from sgc.lang.words import user_begin as user_begin
from sgc.lang.words import user_end as user_end
from sgc.lang.words import video as video
from sgc.programs.decorator import function as function
from sgc.programs.function import Function as Function
from sgc.runs.batch import BatchFailed as BatchFailed
from sgc.runs.endpoint import Endpoint as _Endpoint
from sgc.runs.endpoints import RemoteEngine as RemoteEngine
from sgc.runs.endpoints import Runtime as Runtime
from sgc.runs.endpoints import RuntimeEndpoint as RuntimeEndpoint
from sgc.runs.endpoints import connect as connect
from sgc.runs.endpoints import flush_cache as flush_cache
from sgc.runs.endpoints import get_server_info as get_server_info
from sgc.runs.endpoints import set_default_backend as set_default_backend
from sgc.runs.endpoints import take_also as _take_also
from sgc.runs.keeping import cached as cached
from sgc.runs.keeping import record as record
from sgc.runs.keeping import replay as replay
from sgc.runs.providers import Anthropic as Anthropic
from sgc.runs.providers import OpenAI as OpenAI
from sgc.runs.run import RunState as RunState
from sgc.runs.streaming import StreamedText as StreamedText
from sgc.runtime.executor.log.run_log import RunLog as RunLog
from sgc.runtime.executor.run.record import RunResult as RunResult


@_take_also
def _written_for_sglang(given: object) -> _Endpoint | None:
    """An endpoint around an object with SGLang's hooks; imports the adapter only if needed."""
    if not all(callable(getattr(given, n, None)) for n in ("generate", "get_chat_template")):
        return None
    from sgc.compat.sglang.backends.own_backends import adapted

    return adapted(given)
