// The page: its parts as tabs. A part is drawn when it is first shown.

const data = JSON.parse(document.getElementById("data").textContent);
const bodies = new Map();
const waiting = new Map();

const PARTS = [
  ["overview", "Overview", () => true, summarySection],
  ["program", "Program", () => data.program, programSection],
  ["rows", "Rows", () => data.rows, rowsSection],
  ["requests", "Requests", () => data.run?.requests.length || data.run?.calls.length, requestsSection],
  ["prompts", "Prompts", () => data.run?.requests.length, promptsSection],
  ["passes", "Passes", () => data.program?.passes.length, passesSection],
];

function open(name) {
  if (!bodies.has(name)) return;
  for (const [each, body] of bodies) body.hidden = each !== name;
  for (const tab of document.querySelectorAll("nav button")) {
    const isOpen = tab.dataset.part === name;
    tab.setAttribute("aria-selected", String(isOpen));
    tab.tabIndex = isOpen ? 0 : -1;
  }
  for (const draw of waiting.get(name).splice(0)) draw();
}

// Opens a part and picks one of its rows. A table that was just made has its rows a moment later.
function goTo(name, id) {
  open(name);
  setTimeout(() => bodies.get(name)?.pick?.(id), 50);
}

function tabOf(name, word) {
  return el("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": name, "data-part": name, onclick: () => open(name),
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const tabs = [...document.querySelectorAll("nav button")];
      const next = tabs[(tabs.indexOf(event.currentTarget) + step + tabs.length) % tabs.length];
      next.focus();
      open(next.dataset.part);
    } }, word);
}

function themeButton() {
  document.getElementById("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
  });
}

function start() {
  const about = data.run?.about ?? {};
  document.querySelector("h1").append(shown(oneLine(about.program ?? data.program?.name ?? "results", 80)));
  document.getElementById("about").append(shown(oneLine([about.model, about.seed === undefined ? "" : `seed ${about.seed}`].filter(Boolean).join(" · "))));
  for (const [name, word, isThere, make] of PARTS) {
    if (!isThere()) continue;
    waiting.set(name, []);
    const body = make(data, waiting.get(name), goTo);
    body.id = name;
    body.setAttribute("role", "tabpanel");
    body.setAttribute("aria-labelledby", `tab-${name}`);
    bodies.set(name, body);
    document.querySelector("nav").append(tabOf(name, word));
    document.querySelector("main").append(body);
  }
  themeButton();
  const asked = location.hash.slice(1);
  open(bodies.has(asked) ? asked : data.run ? "overview" : data.program ? "program" : "rows");
  document.documentElement.dataset.drawn = "yes";
}

start();
