// One socket for this tab. It comes back by itself and goes on after the last row that it saw.

export class Stream {
  constructor(heard, connected) {
    this.heard = heard;
    this.connected = connected;
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
      this.connected(true);
      socket.send(JSON.stringify({ type: "follow", sessionId: this.session, after: this.last }));
    };
    socket.onmessage = ({ data }) => {
      const event = JSON.parse(data);
      if (event.seq) this.last = event.seq;
      this.heard(event);
    };
    socket.onclose = ({ code }) => {
      this.connected(false);
      if (code === 4401) return location.assign("/signin");
      if (code >= 4400) return;
      setTimeout(() => this.open(), this.pause);
      this.pause = Math.min(this.pause * 2, 15000);
    };
  }
}
