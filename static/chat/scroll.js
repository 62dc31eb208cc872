// Follows the newest as long as the reader stands there. Whoever scrolls up is left alone.

const NEAR = 4; // px from the end that are still the end

export class Scroll {
  constructor(talk, column, jump) {
    this.talk = talk;
    this.jump = jump;
    this.isFollowing = true;
    this.before = 0;
    new ResizeObserver(() => this.settle()).observe(column);
    new ResizeObserver(() => this.settle()).observe(talk);
    talk.addEventListener("wheel", ({ deltaY }) => deltaY < 0 && this.leave(), { passive: true });
    talk.addEventListener("touchmove", () => this.leave(), { passive: true });
    talk.addEventListener("scroll", () => this.scrolled());
    jump.addEventListener("click", () => this.toEnd());
    this.toEnd();
  }

  get distance() {
    return this.talk.scrollHeight - this.talk.clientHeight - this.talk.scrollTop;
  }

  scrolled() {
    const { scrollTop } = this.talk;
    if (this.distance <= NEAR) this.isFollowing = true;
    else if (scrollTop < this.before) this.isFollowing = false;
    this.before = scrollTop;
    this.show();
  }

  leave() {
    if (this.talk.scrollHeight > this.talk.clientHeight) this.isFollowing = false;
  }

  settle() {
    if (this.isFollowing) this.talk.scrollTop = this.talk.scrollHeight;
    this.show();
  }

  toEnd() {
    this.isFollowing = true;
    this.settle();
  }

  // Something is put above: what the reader looks at stays where it is.
  keeping(anchor, change) {
    const { top } = anchor.getBoundingClientRect();
    change();
    this.talk.scrollTop += anchor.getBoundingClientRect().top - top;
  }

  show() {
    this.jump.hidden = this.isFollowing || this.distance <= NEAR;
  }
}
