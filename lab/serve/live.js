
// Replaces parts of the page by what the server sends. All of it was escaped by
// the server; without this script the page is reloaded now and then.
const from = document.body.dataset.live;
if (from && window.EventSource) {
  const events = new EventSource(from);
  events.addEventListener("part", (e) => {
    const {id, html} = JSON.parse(e.data);
    const there = document.getElementById(id);
    if (!there) return;
    const focused = there.contains(document.activeElement) && document.activeElement.getAttribute("href");
    there.innerHTML = html;
    if (focused) there.querySelectorAll("a").forEach((a) => { if (a.getAttribute("href") === focused) a.focus(); });
  });
  events.addEventListener("reload", () => { events.close(); location.reload(); });
}
