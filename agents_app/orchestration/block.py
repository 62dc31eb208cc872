"""What an agent is told of those that it may start. The words are those of the document that this was built
by, with three changes: a prompt goes with a spawn, nothing is said of git installations, and the convention
for post-mortems stands at the end."""

from collections.abc import Sequence

from agents_app.definitions.agents import Agent

_BLOCK = """## Other agents you can spawn

You can start and supervise sessions of these agents:

{agents}

If you need another agent not on this list, call request_grant with
grant_type='spawn' and the child_agent_id you want. The user will see
a dialog and can approve or deny.

Tools:
- list_spawnable_agents() → [{{id, slug, name}}]. Returns the children this session may spawn (resolved from \
active spawn grants).
- spawn_session({{child_agent_id, prompt, model?}}) → {{session_id, status}}. Starts a new session of an \
agent you're permitted to spawn. Use child_agent_id from list_spawnable_agents. Optional `model` overrides \
the child's default Claude model for this spawn — pass a short name ("sonnet", "opus", "haiku") or a full id \
(e.g. "claude-sonnet-4-5@20250929"); the value must be in the deployment's enabled-models allowlist. Use \
as a  cost lever — sonnet for routine work, opus for migrations / auth / tenant-isolation / cross-domain \
 refactors. Omitting the field inherits the child agent's configured model.
- read_child_output({{child_session_id, after_seq?, limit?}}) → {{child: {{id, status}}, events: [{{seq, \
type, payload, timestamp}}]}}. Pulls the child's event log. Pass after_seq to read only newer events.
- inject_message({{child_session_id, text}}). Sends text to a child as if it were a user message.
- expect_quiet_for({{seconds, reason?}}). Tell the platform you'll be silent so the activity watchdog \
doesn't escalate you as stuck.

Control flow:
- You do not need to poll or block for child progress. The platform will re-wake you by injecting a \
`user.message` whenever a wake event fires (child reports, child finishes, child goes silent, scheduled \
tick). End your turn after each decision; do not loop.
- Wakes carry a `driverless: true` flag when no human is watching. In driverless mode, do not ask clarifying \
questions — if a decision genuinely needs a human, emit a `share` titled "Needs human review: <summary>" and \
end the turn.

Rules:
- Children run in this workspace. Cross-workspace spawning is not allowed.
- Do not spawn children in a loop. If you need many similar tasks, write them as one prompt to a single child.

Post-mortems:
- When you call cancel_session, the next action in the same turn must be a `share` whose title starts \
"Post-mortem: " followed by the child session's slug or a short summary. Its body uses these sections in \
order: Root cause (one sentence), What happened (2-4 sentences), Evidence (seq numbers from the child's \
event  stream, or excerpts from read_child_output), Lessons (what to change in the next attempt's brief), \
Next steps (respawn with narrower scope / defer / block on human input)."""


def told(agents: Sequence[Agent]) -> str:
    """Empty where there is nobody to start."""
    if not agents:
        return ""
    return _BLOCK.format(agents="\n".join(f"- {each.slug} — {each.definition.name}" for each in agents))
