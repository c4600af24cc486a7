"""Gives each TransferQueue batch a trace id, so that [TQ-TRACE] and [TQ-DETAIL] lines of one batch carry the same one.

verl prints BatchMeta.extra_info["trace_id"], and nothing in verl writes it: without this module every line says N/A.
Importing this module is all there is to do, before or after transfer_queue. README.md beside it says where.

An id is a UUID4 as text. A meta gets it where a client receives the meta from the controller, which is how each batch
begins. From there TransferQueue itself carries extra_info through chunk, select, reorder, copies and pickles to the
workers, so only the process that makes the metas needs this module. The id also goes into the custom_meta of each
sample (TransferQueue 0.1.6 and later), which a put sends to the controller anyway: whoever fetches these samples later
finds the id there. An id that is there is never changed.

Nothing in here can fail a training: an error is said once on stderr, and the batch goes on without an id.
Python 3.8 and later, no dependencies; made for TransferQueue 0.1.5 to 0.1.11.
"""

import copy
import functools
import sys
import threading
import uuid

KEY = "trace_id"

_said = False


def _say(error):
    """Tells the first error, and only this one."""
    global _said
    if _said:
        return
    _said = True
    try:
        text = f"trainbridge_trace: a TransferQueue batch may be without its trace id: {type(error).__name__}: {error}"
        print(text, file=sys.stderr, flush=True)
    except Exception:
        pass


def _identify(meta):
    """Gives a meta that came from the controller the id that all of its samples have, else a new one."""
    if not meta.size or meta.extra_info.get(KEY) is not None:
        return
    samples = getattr(meta, "custom_meta", None)
    if not isinstance(samples, list):
        samples = []
    known = {sample.get(KEY) for sample in samples}
    # Samples of several batches make a new batch.
    found = known.pop() if len(known) == 1 else None
    meta.extra_info[KEY] = found or str(uuid.uuid4())
    for sample in samples:
        sample.setdefault(KEY, meta.extra_info[KEY])


def _agreed(metas):
    """The metas, all with the first one's id where they have different ids: TransferQueue refuses to join such metas."""
    ids = [meta.extra_info[KEY] for meta in metas if meta is not None and meta.size and meta.extra_info.get(KEY) is not None]
    if len(set(ids)) < 2:
        return metas
    agreed = []
    for meta in metas:
        if meta is not None and meta.size:
            meta = copy.copy(meta)  # the caller's metas keep their own ids
            meta.extra_info = {**meta.extra_info, KEY: ids[0]}
        agreed.append(meta)
    return agreed


def _identifying(async_get_meta):
    @functools.wraps(async_get_meta)
    async def wrapper(self, *args, **kwargs):
        meta = await async_get_meta(self, *args, **kwargs)
        try:
            _identify(meta)
        except Exception as e:
            _say(e)
        return meta

    return wrapper


def _agreeing(concat):
    @functools.wraps(concat)
    def wrapper(cls, data, *args, **kwargs):
        try:
            data = _agreed(data)
        except Exception as e:
            _say(e)
        return concat(cls, data, *args, **kwargs)

    return wrapper


def _parental(union):
    @functools.wraps(union)
    def wrapper(self, other, *args, **kwargs):
        meta = union(self, other, *args, **kwargs)
        try:
            # TransferQueue would take the other's.
            if self.extra_info.get(KEY) is not None:
                meta.extra_info[KEY] = self.extra_info[KEY]
        except Exception as e:
            _say(e)
        return meta

    return wrapper


def _patch():
    """Puts the three wrappers in their places, once."""
    try:
        client = sys.modules["transfer_queue.client"].AsyncTransferQueueClient
        meta = sys.modules["transfer_queue.metadata"].BatchMeta
        if hasattr(client.async_get_meta, "__trainbridge__"):
            return
        # All are made before the first is set: half of them would be worse than none.
        identifying = _identifying(client.async_get_meta)
        identifying.__trainbridge__ = True
        agreeing, parental = _agreeing(meta.concat.__func__), _parental(meta.union)
        meta.concat, meta.union = classmethod(agreeing), parental
        client.async_get_meta = identifying
    except Exception as e:
        _say(e)


class _Finder:
    """Waits for transfer_queue to be imported. Importing it here would load torch into every Python process."""

    def __init__(self):
        self.looking = threading.local()  # another finder of this kind may ask this one again

    def find_spec(self, name, path=None, target=None):
        if name != "transfer_queue" or getattr(self.looking, "now", False):
            return None
        self.looking.now = True
        try:
            return self.watched(name, path, target)
        except Exception as e:
            _say(e)
            return None
        finally:
            self.looking.now = False

    def watched(self, name, path, target):
        """The spec that the other finders have, with a loader that calls _patch at its end."""
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is None:
                continue
            load = spec.loader.exec_module

            def exec_module(module):
                load(module)
                _patch()

            spec.loader.exec_module = exec_module
            return spec
        return None


def _install():
    try:
        if "transfer_queue" in sys.modules:
            _patch()
        else:
            sys.meta_path.insert(0, _Finder())
    except Exception as e:
        _say(e)


_install()
