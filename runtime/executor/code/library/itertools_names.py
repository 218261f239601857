"""Names of `itertools`; iterators that skip items are charged for them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from sgc.runtime.executor.code.fuel import charge, current
from sgc.runtime.executor.code.iterators import (
    drained,
    is_iterable,
    metered,
    nested,
    no_iterator,
    source,
)
from sgc.runtime.executor.code.methods.attributes import OF_TYPES, guarded
from sgc.runtime.executor.code.methods.operators import add
from sgc.runtime.executor.code.tree.driving import driven
from sgc.runtime.executor.interface.value_limits import check_items


def _chain(*args: Any) -> Any:
    return nested(itertools.chain(*args), *args)


def _from_iterable(*args: Any) -> Any:
    (items,) = args
    return nested(driven(current(), _flat, iter(items)), items)


def _flat(items: Iterator[Any]) -> Iterator[Any]:
    box: list[Any] = [metered(items)]
    while True:
        try:
            charge(2)
            box.append(next(box[-1]))
        except StopIteration:
            box.pop()
            if not box:
                return
            continue
        if len(box) == 2:
            box[1] = iter(box[1])
        else:
            yield box.pop()


OF_TYPES[_chain] = {"from_iterable": _from_iterable}


def _skipping(real: Callable[..., Any], *, has_function: bool = False) -> Callable[..., Any]:
    """An iterator that may consume many items before it yields one."""

    def function(*args: Any, **kwargs: Any) -> Any:
        at = int(has_function)
        sources = args[at : at + 1]
        if len(sources) == 1 and is_iterable(sources[0]):
            function = [guarded(args[0])] if has_function else []
            args = (*function, source(sources[0]), *args[at + 1 :])
        return nested(real(*args, **kwargs), *sources)

    return function


def _compress(data: Any, selectors: Any) -> Any:
    return nested(itertools.compress(source(data), source(selectors)), data, selectors)


def _zip_longest(*args: Any, **kwargs: Any) -> Any:
    return nested(itertools.zip_longest(*args, **kwargs), *args, *kwargs.values())


def _groupby(iterable: Any, key: Any = None) -> Any:
    by = guarded(key)
    keep = no_iterator if by is None else lambda item: no_iterator(by(item))
    found = nested(itertools.groupby(source(iterable), keep), iterable)
    return nested(_groups(found), found)


def _groups(found: Any) -> Iterator[Any]:
    for key, group in found:
        yield key, nested(group, found)


def _accumulate(iterable: Any, func: Any = None, *, initial: Any = None) -> Any:
    by = add if func is None else guarded(func)
    items = map(no_iterator, iterable)
    made = itertools.accumulate(
        items, lambda a, b: no_iterator(by(a, b)), initial=no_iterator(initial)
    )
    return nested(made, iterable)


def _pairwise(*args: Any) -> Any:
    if len(args) != 1:
        return itertools.pairwise(*args)
    return nested(itertools.pairwise(map(no_iterator, args[0])), *args)


def _product(*args: Any, repeat: Any = 1) -> Any:
    pools = [drained(each) if is_iterable(each) else each for each in args]
    if isinstance(repeat, int):
        check_items(len(pools) * max(repeat, 0))
        charge(len(pools) * max(repeat, 0))
        check_items(sum(map(len, pools)) * max(repeat, 0))
    width = len(pools) * repeat if isinstance(repeat, int) else 1
    return _priced(itertools.product(*pools, repeat=repeat), width)


def _chosen(real: Callable[..., Any]) -> Callable[..., Any]:
    """Combinations and permutations."""

    def function(iterable: Any, r: Any = None) -> Any:
        pool = drained(iterable)
        width = len(pool) if r is None else r
        if isinstance(width, int):
            check_items(width)
            charge(len(pool) + max(width, 0))
        args = () if r is None and real is itertools.permutations else (r,)
        return _priced(real(pool, *args), width)

    return function


def _priced(items: Iterator[Any], width: int) -> Iterator[Any]:
    cost = 2 + (width >> 2)
    for item in items:
        charge(cost)
        yield item


def _starmap(function: Any, iterable: Any) -> Any:
    called = guarded(function)
    # A generator would keep its item alive.
    return nested(map(lambda item: called(*drained(item)), iterable), iterable)  # noqa: C417


def _repeat(*args: Any, **kwargs: Any) -> Any:
    return nested(itertools.repeat(*args, **kwargs), *args[:1])


def _takewhile(predicate: Any, iterable: Any) -> Any:
    return nested(itertools.takewhile(guarded(predicate), iterable), iterable)


ITERTOOLS: dict[str, Any] = {
    "accumulate": _accumulate,
    "chain": _chain,
    "combinations": _chosen(itertools.combinations),
    "combinations_with_replacement": _chosen(itertools.combinations_with_replacement),
    "compress": _compress,
    "count": itertools.count,
    "cycle": _skipping(itertools.cycle),
    "dropwhile": _skipping(itertools.dropwhile, has_function=True),
    "filterfalse": _skipping(itertools.filterfalse, has_function=True),
    "groupby": _groupby,
    "islice": _skipping(itertools.islice),
    "pairwise": _pairwise,
    "permutations": _chosen(itertools.permutations),
    "product": _product,
    "repeat": _repeat,
    "starmap": _starmap,
    "takewhile": _takewhile,
    "zip_longest": _zip_longest,
}
