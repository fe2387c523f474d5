// A page that is opened from a folder may start no worker: a frame of the page does its work.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      const load = address => new Promise((done, failed) => {
        const script = inside.document.createElement("script");
        script.src = new URL(address, location.href).href;
        script.onload = done;
        script.onerror = failed;
        inside.document.body.append(script);
      });
      inside.importScripts = (...addresses) => Promise.all(addresses.map(load));
      inside.postMessage = data => {
        const event = new MessageEvent("message", {data});
        this.dispatchEvent(event);
        this.onmessage?.(event);
      };
      this.loaded = load(url);
    }

    postMessage(data) {
      const {contentWindow: inside} = this.frame;
      this.loaded.then(() => inside.dispatchEvent(new inside.MessageEvent("message", {data})));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
