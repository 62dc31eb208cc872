import pytest

from tests.permissions_app.room import Room


@pytest.mark.parametrize(
    "tool",
    ["Task", "Agent", "TaskUpdate", "TodoWrite", "Skill", "WebSearch", "BashOutput", "KillShell", "TaskStop"],
)
def test_harmless_tools_are_always_allowed(room: Room, tool: str) -> None:
    assert room.rule(tool) == room.sandboxed.without_wall.rule(tool) == ("allow", "always_allowed")


@pytest.mark.parametrize(
    "tool",
    ["CronCreate", "CronAnything", "ScheduleWakeup", "EnterWorktree", "SendMessage", "Workflow", "Monitor"],
)
def test_tools_that_go_around_us_are_denied_at_any_trust(room: Room, tool: str) -> None:
    assert room.rule(tool) == room.at_full.rule(tool) == ("deny", "not_offered")


@pytest.mark.parametrize("isolation", ["worktree", "remote"])
def test_a_sub_agent_in_a_place_of_its_own_is_denied(room: Room, isolation: str) -> None:
    assert room.rule("Agent", prompt="x", isolation=isolation) == ("deny", "not_offered")


@pytest.mark.parametrize("tool", ["AskUserQuestion", "ExitPlanMode"])
def test_tools_that_ask_a_person_ask(room: Room, tool: str) -> None:
    assert room.at_full.rule(tool) == ("ask", "question")


@pytest.mark.parametrize("tool", ["read", "BASH", "FutureTool", "mcp", "mcp_parachute_share"])
def test_a_tool_that_we_do_not_know_asks(room: Room, tool: str) -> None:
    assert room.rule(tool, command="ls", file_path="a.md") == ("ask", "unknown_tool")


@pytest.mark.parametrize(
    "tool", ["mcp__parachute__share", "mcp__parachute__search_vault", "mcp__curator__update_title"]
)
def test_tools_of_our_own_servers_are_allowed(room: Room, tool: str) -> None:
    assert room.rule(tool, query="x") == ("allow", "own_server")


@pytest.mark.parametrize(
    "tool",
    [
        "mcp__parachute__x__y",
        "mcp__parachute___share",
        "mcp__parachute____share",
        "mcp__parachute_x__share",
        "mcp__parachute-x__share",
        "mcp__Parachute__share",
        "mcp__parachute__",
        "mcp__parachute",
        "mcp____share",
        "mcp__notes__parachute__share",
    ],
)
def test_a_server_that_only_looks_like_ours_asks(room: Room, tool: str) -> None:
    assert room.at_full.rule(tool) == ("ask", "foreign_server")


def test_a_server_of_ours_with_an_ambiguous_name_is_not_trusted_either(room: Room) -> None:
    odd = room.with_(own_servers=frozenset({"parachute__x"}))
    assert odd.rule("mcp__parachute__x__y") == ("ask", "foreign_server")


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org",
        "http://example.org:8080/a?b=c#d",
        "HTTPS://EXAMPLE.ORG./",
        "https://m\u00fcnchen.de/stra\u00dfe",
        "https://8.8.8.8/",
        "https://[2606:4700::1111]/",
        "https://10.example.org/",
        "https://local.example.org/?next=http://localhost",
    ],
)
def test_a_public_page_is_fetched(room: Room, url: str) -> None:
    assert room.rule("WebFetch", url=url, prompt="x") == ("allow", "public_host")


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost/",
        "http://localhost.:3333/",
        "http://\u24db\u24de\u24d2alhost/",
        "http://loc\u00adalhost/",
        "http://router/",
        "http://printer.local/",
        "http://metadata.google.internal/",
        "http://nas.LAN/",
        "http://1.0.0.127.in-addr.arpa/",
        "http://127.0.0.1:3333/api",
        "http://127.1/",
        "http://2130706433/",
        "http://0177.0.0.1/",
        "http://0x7f.0.0.1/",
        "http://0x7f000001/",
        "http://0/",
        "http://\uff11\uff12\uff17.0.0.1/",
        "http://127\u30020\u30020\u30021/",
        "http://10.0.0.8/",
        "http://172.16.3.4/",
        "http://192.168.1.1/",
        "http://100.100.100.200/",
        "http://169.254.169.254/latest/meta-data",
        "http://168.63.129.16/",
        "http://192.0.0.192/",
        "http://224.0.0.1/",
        "http://[::1]/",
        "http://[::]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[::7f00:1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[fe80::1]/",
        "http://[fd00:ec2::254]/",
        "http://[fec0::1]/",
    ],
)
def test_a_private_host_is_not_fetched(room: Room, url: str) -> None:
    assert room.at_full.rule("WebFetch", url=url, prompt="x") == ("deny", "private_host")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.org/",
        "example.org",
        "https://",
        "https:example.org",
        "https:///example.org",
        "https://example.org@localhost/",
        "https://example.org\\@localhost/",
        "https://example.org%2f@localhost/",
        "http://%6c%6f%63alhost/",
        "https://exa mple.org/",
        "https://example.org/\n",
        " https://example.org/",
        "http://1.2.3.4.5/",
        "http://256.256.256.256/",
        "http://\u00e9.1/",
        "http://08.8.8.8/",
        "http://[fe80::1%25eth0]/",
        "http://[:::]/",
        "http://a\uff0fb.org/",
        "http://[v1.x]/",
        "https://" + "a" * 9000 + ".org",
        "",
        None,
        7,
    ],
)
def test_an_address_that_could_be_read_in_two_ways_is_denied(room: Room, url: object) -> None:
    assert room.rule("WebFetch", url=url, prompt="x") == ("deny", "not_understood")
