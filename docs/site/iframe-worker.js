// Search runs in a worker, and browsers start none for pages opened as files. There it runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      // Later, as a worker would: the page does not expect an answer while it asks.
      inside.postMessage = data => setTimeout(() => this.onmessage?.({ data }));
      const script = inside.document.createElement("script");
      script.src = new URL(url, location).href;
      script.onerror = () => this.onerror?.(new ErrorEvent("error", { message: "search cannot be loaded" }));
      // A copy made in there: arrays of this page are no arrays to the script.
      this.send = data => inside.onmessage({ data: inside.structuredClone(data) });
      script.onload = () => {
        this.waiting.forEach(this.send);
        this.waiting = null;
      };
      inside.document.head.appendChild(script);
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.send(data);
    }
    terminate() {
      this.frame.remove();
    }
  };
}
