// One socket for this tab. It comes back by itself; what it asks for again is what may not be over yet, and
// whoever hears it can take the same thing twice.

import { toSignIn } from "./api.js";

const FINAL = { 4401: toSignIn };
const SILENCE = 40_000; // ms: the server says something every 15 s; after more than two of these it is gone

export class Stream {
  constructor({ heard, changed, gone }) {
    this.heard = heard;
    this.changed = changed;
    this.gone = gone;
    this.isAway = false;
    this.pause = 500;
    this.waiting = null;
    addEventListener("online", () => this.again());
    document.addEventListener("visibilitychange", () => document.hidden || this.again());
  }

  // `from` says, each time that it is asked, after which row to follow the session.
  follow(session, from) {
    this.session = session;
    this.from = from;
    if (this.socket?.readyState === WebSocket.OPEN) this.ask();
  }

  open() {
    this.waiting = null;
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = (this.socket = new WebSocket(`${scheme}://${location.host}/ws/page`));
    socket.onopen = () => {
      this.pause = 500;
      this.be(false);
      this.say({ type: "follow", list: true });
      this.say({ type: "follow", inbox: true });
      this.ask();
      this.listen();
    };
    socket.onmessage = ({ data }) => {
      this.listen();
      this.heard(JSON.parse(data));
    };
    socket.onclose = ({ code }) => {
      clearTimeout(this.silence);
      if (FINAL[code]) return FINAL[code]();
      if (code === 4403 || code === 4404) return this.gone();
      this.be(true);
      this.waiting = setTimeout(() => this.open(), this.pause);
      this.pause = Math.min(this.pause * 2, 15_000);
    };
  }

  ask() {
    if (this.session) this.say({ type: "follow", sessionId: this.session, after: this.from() });
  }

  say(order) {
    this.socket.send(JSON.stringify(order));
  }

  // A laptop that slept, or a network that came back: at once, and not after the pause.
  again() {
    if (this.waiting === null) return;
    clearTimeout(this.waiting);
    this.open();
  }

  listen() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.socket.close(), SILENCE);
  }

  be(away) {
    this.isAway = away;
    this.changed();
  }
}
