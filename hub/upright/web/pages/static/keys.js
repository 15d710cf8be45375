// Keys: what a person may type instead of pointing; nothing is taken while they write into a field.

const dialog = document.getElementById("keys");
const help = document.getElementById("help");
const TOGETHER_MS = 1_500;
let first = 0;

help.hidden = false;
help.addEventListener("click", () => dialog.showModal());

function rows(step) {
  const links = [...document.querySelectorAll("[data-row] a[id]:first-of-type, [data-row] h3")].filter((one) => one.matches("a"));
  if (!links.length) return;
  const at = links.indexOf(document.activeElement);
  const next = at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + step, 0), links.length - 1);
  links[next].focus();
}

function go(key) {
  const link = document.querySelector(`nav a[data-key="${CSS.escape(key)}"]`);
  if (link) location.assign(link.href);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
  if (dialog.open) return;
  if (first && event.timeStamp - first < TOGETHER_MS) {
    first = 0;
    go(event.key);
    return;
  }
  first = 0;
  if (event.key === "g") first = event.timeStamp;
  else if (event.key === "j") rows(1);
  else if (event.key === "k") rows(-1);
  else if (event.key === "?") dialog.showModal();
  else if (event.key === "/") {
    const search = document.getElementById("search");
    if (!search) return;
    event.preventDefault();
    search.focus();
  }
});
