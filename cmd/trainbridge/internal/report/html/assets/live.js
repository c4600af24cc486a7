// A page that is served asks its server now and then whether there is more.

const every = 2000; // ms
let tag = holder.dataset.tag, asking = false;
footer.lastChild.textContent = words.served;
history.replaceState(null, "", location.pathname + location.hash); // without the token

function tell(s) {
  const parts = [s.reading ? words.reading.replace("%d", Math.round(100 * s.done / Math.max(1, s.total))) : "", s.read ? words.asOf.replace("%s", new Date(s.read).toLocaleTimeString(data.lang)) : "", s.trouble || ""];
  const text = plain(parts.filter(Boolean).join(" · "));
  if (state.textContent !== text) state.textContent = text;
  state.classList.toggle("busy", Boolean(s.reading));
  state.classList.toggle("bad", Boolean(s.trouble));
}

async function ask() {
  if (asking || document.hidden) return;
  asking = true;
  try {
    const answer = await fetch("state.json", { cache: "no-store" });
    if (!answer.ok) throw new Error(await answer.text());
    const s = await answer.json();
    if (s.tag !== tag) {
      const next = await fetch("document.json", { cache: "no-store" });
      if (!next.ok) throw new Error(await next.text());
      data = await next.json();
      tag = next.headers.get("ETag");
      render();
      if (sought && sought === location.hash) go();
    }
    tell(s);
  } catch (e) {
    tell({ trouble: e instanceof TypeError ? words.gone : e.message });
  }
  asking = false;
}
setInterval(ask, every);
document.addEventListener("visibilitychange", ask);
ask();
