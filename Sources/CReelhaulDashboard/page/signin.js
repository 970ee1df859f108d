// Signing in with a token. The server keeps it in a cookie that no script can read.
import { signIn } from "./api.js";
import { h, show } from "./dom.js";
import { field } from "./ui.js";

export function open(_, view) {
  let words = "", isBusy = false;
  const draw = () => show(view.root, h("form", { class: "panel sign-in", onsubmit: send },
    h("h1", { tabindex: "-1" }, "Sign in"),
    h("p", { class: "quiet" }, "This fleet wants to know who you are."),
    // A name makes password managers keep the token.
    h("input", { class: "sr", name: "username", autocomplete: "username", value: "reelhaul", tabindex: "-1", "aria-hidden": "true", readonly: true }),
    field("Token", h("input", { type: "password", name: "token", required: true, autocomplete: "current-password", spellcheck: "false", placeholder: "rhl_…", "aria-describedby": "sign-in-answer", autofocus: true })),
    h("p", { id: "sign-in-answer", class: "is-error", role: "alert" }, words),
    h("button", { class: "main", disabled: isBusy }, isBusy ? "Signing in…" : "Sign in"),
    h("p", { class: "quiet" }, "Whoever runs the fleet makes one: ", h("code", {}, "reelhaul token create --name you --scope write"))));
  draw();
  document.title = "Sign in · Reelhaul";
  view.root.querySelector("[name=token]").focus();

  async function send(event) {
    event.preventDefault();
    const input = event.target.querySelector("[name=token]");
    isBusy = true;
    words = "";
    draw();
    try {
      await signIn(input.value.trim());
      dispatchEvent(new Event("reelhaul-signed-in"));
      return;
    } catch (problem) {
      words = problem.status === 401 || problem.status === 403 ? "This token is not known, has ended or was revoked." : problem.message;
    }
    isBusy = false;
    draw();
    input.select();
  }
}
