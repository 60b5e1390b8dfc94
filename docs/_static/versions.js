// A menu of the published versions, which the workflow lists in versions.json beside their folders.
fetch(new URL("../versions.json", document.querySelector("script[src*=versions]").src.replace(/_static.*/, "")))
  .then((reply) => (reply.ok ? reply.json() : []))
  .then((versions) => {
    const place = document.querySelector(".sidebar-sticky");
    if (versions.length < 2 || !place) return;
    const menu = document.createElement("select");
    menu.ariaLabel = "Version";
    menu.className = "versions";
    const current = location.pathname.split("/").find((part) => versions.includes(part));
    for (const version of versions) menu.add(new Option(version, version, false, version === current));
    menu.onchange = () => (location.href = location.href.replace(`/${current}/`, `/${menu.value}/`));
    place.prepend(menu);
  })
  .catch(() => {});
