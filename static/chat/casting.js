// Who answers in a new chat: the agents of its workspace, and with one of them its model and what it may reach.

export class Casting {
  constructor(form) {
    this.agent = form.querySelector("#agent");
    this.model = form.querySelector("#model");
    this.trust = form.querySelector("#trust");
    this.workspace = form.querySelector("#workspace");
    this.usualModel = this.model.value;
    if (this.agent.disabled) return; // a chat keeps its agent
    this.agent.addEventListener("change", () => this.cast());
    this.workspace?.addEventListener("change", () => this.move());
    this.model.addEventListener("change", () => (this.model.dataset.byHand = ""));
    this.move();
  }

  // The agents of another workspace are others.
  move() {
    const here = this.workspace?.value;
    for (const option of this.agent.options) {
      option.hidden = option.disabled = Boolean(here) && option.dataset.workspace !== here;
    }
    if (this.agent.selectedOptions[0]?.disabled) {
      const usual = [...this.agent.options].find((option) => !option.disabled && "usual" in option.dataset);
      this.agent.value = "";
      if (usual) usual.selected = true;
    }
    const offered = [...this.agent.options].filter((option) => !option.disabled);
    this.agent.parentElement.hidden = offered.length < 2;
    this.cast();
  }

  offer(slug) {
    const option = [...this.agent.options].find(({ value, disabled }) => value === slug && !disabled);
    if (!option || this.agent.disabled) return;
    option.selected = true;
    this.cast();
  }

  // What a person chose by hand stays; an agent that may reach less reaches less.
  cast() {
    const { model, trust } = this.agent.selectedOptions[0]?.dataset ?? {};
    if (!("byHand" in this.model.dataset)) this.pick(model || this.usualModel);
    const levels = [...this.trust.options].map(({ value }) => value);
    if (trust && levels.indexOf(this.trust.value) < levels.indexOf(trust)) this.trust.value = trust;
  }

  pick(model) {
    if (![...this.model.options].some(({ value }) => value === model)) this.model.add(new Option(model));
    this.model.value = model;
  }

  // The agent brings its model, unless a person chose another.
  chosen() {
    const agent = this.agent.value;
    const model = "byHand" in this.model.dataset || !agent ? this.model.value : "";
    return { ...(agent && { agent }), ...(model && { model }) };
  }
}
