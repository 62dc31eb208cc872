from sessions_app.errors import Conflict


class CuratorIsOff(Conflict):
    code = "curator_off"


class NothingToLookAt(Conflict):
    code = "nothing_said"


class CannotUndo(Conflict):
    code = "cannot_undo"
