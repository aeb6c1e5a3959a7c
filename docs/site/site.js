// What the theme adds to code and tables while it loads, made fit for keyboards, screen readers and pasting.
const mend = () => {
  for (const bar of document.querySelectorAll("nav.md-code__nav:not([role])")) {
    bar.setAttribute("role", "none"); // one button is no place to navigate to
    const code = bar.closest("pre")?.querySelector("code");
    const lines = code?.textContent.split("\n") ?? [];
    if (lines.some(line => line.startsWith(">>>"))) { // paste the input, without prompts and output
      const input = lines.filter(line => /^(>>>|\.\.\.)( |$)/.test(line)).map(line => line.slice(4));
      bar.querySelector("[data-clipboard-target]")?.setAttribute("data-clipboard-text", input.join("\n") + "\n");
    }
  }
  // A doctest writes so for an empty line of output.
  for (const line of document.querySelectorAll("code .go")) if (line.textContent === "<BLANKLINE>") line.textContent = "";
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) table.tabIndex = 0;
};
new MutationObserver(mend).observe(document.documentElement, { childList: true, subtree: true });
mend();
