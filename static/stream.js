// One socket for this tab. It comes back by itself and goes on after the last row that it saw.

import { toSignIn } from "./api.js";

const GONE = { 4403: "You may not read this any more.", 4404: "This chat is not there any more." };

export class Stream {
  constructor(heard, changed, complain) {
    this.heard = heard;
    this.changed = changed;
    this.complain = complain;
    this.isAway = false;
    this.last = 0;
    this.pause = 500;
  }

  follow(session, after) {
    this.session = session;
    this.last = after;
    this.open();
  }

  open() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/ws`);
    socket.onopen = () => {
      this.pause = 500;
      this.be(false);
      socket.send(JSON.stringify({ type: "follow", sessionId: this.session, after: this.last }));
    };
    socket.onmessage = ({ data }) => {
      const event = JSON.parse(data);
      if (event.seq) this.last = event.seq;
      this.heard(event);
    };
    socket.onclose = ({ code }) => {
      if (code === 4401) return toSignIn();
      if (GONE[code]) return this.complain(new Error(GONE[code]));
      this.be(true);
      setTimeout(() => this.open(), this.pause);
      this.pause = Math.min(this.pause * 2, 15000);
    };
  }

  be(away) {
    this.isAway = away;
    this.changed();
  }
}
