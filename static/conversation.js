// Shows a conversation: remembered messages first, then events as they come. Each turn has a place of its own,
// so that what is said while another turn still answers stands below that answer.

export class Conversation {
  constructor(log, scroller) {
    this.log = log;
    this.scroller = scroller;
    this.over = new Set(); // turns that are in the remembered messages already
    this.open = new Set(); // turns that are not over
    this.blocks = new Map(); // unfinished text, by turn and block
    this.tools = new Map();
    this.places = new Map(); // where each turn is shown
  }

  get isWorking() {
    return this.open.size > 0;
  }

  remember(said) {
    this.over.add(said.turnId);
    this.enter(said.turnId);
    for (const block of said.content) {
      if (block.type === "text") this.add(said.role === "user" ? "said" : "text", block.text);
      else if (block.type === "thinking") this.think(block.thinking);
      else if (block.type === "tool_use") this.tool(block);
      else if (block.type === "tool_result") this.result(block.tool_use_id, asText(block.content), block.is_error);
    }
    this.down(true);
  }

  take(event) {
    if (event.turnId && this.over.has(event.turnId)) return;
    const atEnd = this.isAtEnd();
    const show = this[`on_${event.type}`];
    if (!show) return;
    this.enter(event.turnId);
    show.call(this, event);
    this.down(atEnd);
  }

  on_session(event) {
    this.open.add(event.turnId);
    this.forget(event.turnId); // a turn that begins again begins its unfinished text again
  }

  on_user_message(event) { this.add("said", event.content); }
  on_text(event) { this.block(event, () => this.add("text", "")); }
  on_thinking(event) { this.block(event, () => this.think("")); }
  on_tool_use(event) { this.tool(event.tool); }
  on_tool_result(event) { this.result(event.toolUseId, event.content, event.isError); }
  on_permission_denied(event) { this.add("note", `${event.toolName} was refused: ${event.reason}`); }
  on_warning(event) { this.add("note", `${event.title}: ${event.message}`); }
  on_done(event) { this.end(event); }
  on_aborted(event) { this.end(event); this.add("note", "Stopped."); }
  on_error(event) { this.end(event); this.add("trouble", event.error); }
  on_typed_error(event) { this.end(event); this.add("trouble", `${event.title}. ${event.message}`); }

  block(event, make) {
    const key = `${event.turnId}:${event.block}`;
    if (!this.blocks.has(key)) this.blocks.set(key, { element: make(), length: 0 });
    const begun = this.blocks.get(key);
    const body = begun.element.querySelector(".body") || begun.element;
    if ("delta" in event) {
      // Whoever comes back gets the text so far as one delta: it begins where it says, not where ours ends.
      if (event.offset < begun.length) body.textContent = characters(body.textContent).slice(0, event.offset).join("");
      body.append(event.delta);
      begun.length = event.offset + characters(event.delta).length;
      return;
    }
    body.textContent = event.content;
    this.blocks.delete(key);
  }

  end(event) {
    this.open.delete(event.turnId);
    this.forget(event.turnId);
  }

  forget(turnId) {
    for (const [key, { element }] of this.blocks) {
      if (!key.startsWith(turnId)) continue;
      this.blocks.delete(key);
      element.remove();
    }
  }

  enter(turnId) {
    if (!this.places.has(turnId)) {
      const place = document.createElement("div");
      place.className = "turn";
      this.log.append(place);
      this.places.set(turnId, place);
    }
    this.place = this.places.get(turnId);
  }

  add(kind, text) {
    const element = document.createElement("div");
    element.className = kind;
    element.textContent = text;
    this.place.append(element);
    return element;
  }

  think(text) {
    const details = fold("thinking", "Thinking");
    const body = document.createElement("div");
    body.className = "body";
    body.textContent = text;
    details.append(body);
    this.place.append(details);
    return details;
  }

  tool(tool) {
    const details = fold("tool", `${tool.name} ${summary(tool.input)}`);
    details.append(pre(JSON.stringify(tool.input, null, 2)));
    this.tools.set(tool.id, details);
    this.place.append(details);
  }

  result(id, text, isError) {
    const details = this.tools.get(id);
    if (!details) return;
    details.append(pre(text));
    details.classList.toggle("error", Boolean(isError));
  }

  isAtEnd() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight < 80;
  }

  down(wanted) {
    if (wanted) this.scroller.scrollTop = this.scroller.scrollHeight;
  }
}

function fold(kind, title) {
  const details = document.createElement("details");
  details.className = kind;
  const line = document.createElement("summary");
  line.textContent = title;
  details.append(line);
  return details;
}

function pre(text) {
  const element = document.createElement("pre");
  element.textContent = text;
  return element;
}

function summary(input) {
  return String(input.command || input.file_path || input.path || input.pattern || input.query || "").slice(0, 120);
}

function characters(text) {
  return [...text]; // as the server counts them: an emoji is one
}

function asText(content) {
  return Array.isArray(content) ? content.map((part) => part.text || "").join("\n") : content || "";
}
