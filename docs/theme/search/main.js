// Search in the pages, also from disk: a browser reads no file there but scripts, so that the texts
// of the pages are one (docs/site.py). They are loaded when somebody searches.
const MOST = 30;
let ready;

function script(path) {
  return new Promise((done, failed) => {
    const element = document.createElement("script");
    [element.src, element.onload, element.onerror] = [`${base_url}/search/${path}`, done, failed];
    document.head.append(element);
  });
}

async function load() {
  await Promise.all([script("lunr.js"), script("pages.js")]);
  return lunr(function () {
    this.ref("location");
    this.field("title", { boost: 10 });
    this.field("text");
    for (const page of searchPages.values()) this.add(page);
  });
}

// Pages with all words, and then those with some. The last word may not be complete yet.
function find(index, text) {
  const words = lunr.tokenizer(text).map(String);
  return index.query((query) => {
    for (const word of words) {
      query.term(lunr.stemmer(new lunr.Token(word)).toString(), { boost: 10 });
      query.term(word, { wildcard: lunr.Query.wildcard.TRAILING });
    }
  });
}

function shown({ ref }) {
  const page = searchPages.get(ref);
  const [article, title, link, text] = ["article", "h3", "a", "p"].map((name) => document.createElement(name));
  [link.href, link.textContent] = [`${base_url}/${ref}`, page.title];
  text.textContent = page.text.slice(0, 200);
  title.append(link);
  article.append(title, text);
  return article;
}

document.addEventListener("DOMContentLoaded", () => {
  const box = document.getElementById("properdocs-search-query");
  const results = document.getElementById("properdocs-search-results");
  box.addEventListener("input", async () => {
    ready ??= load();
    const index = await ready;
    const found = box.value.trim() ? find(index, box.value).slice(0, MOST).map(shown) : [];
    results.replaceChildren(...found);
    if (box.value.trim() && !found.length) results.append(results.dataset.noResultsText);
  });
  box.form.addEventListener("submit", (event) => event.preventDefault());
});
