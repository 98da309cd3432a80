import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path/posix";

/** The links of a built site to a file that is not in it, or to an anchor that its file does not have. */
export function deadLinks(site: string): string[] {
  const files = readdirSync(site, { recursive: true, encoding: "utf8" }).map((path) =>
    path.replaceAll("\\", "/"),
  );
  const pages = new Map(
    files
      .filter((path) => /\.(?:html|md|txt)$/.test(path))
      .map((path) => [path, readFileSync(join(site, path), "utf8")]),
  );
  const isThere = (page: string, link: string) => {
    const [path = "", anchor] = link.split("#");
    const target = path === "" ? page : pathOf(page, path);
    if (anchor === undefined || !target.endsWith(".html")) return files.includes(target);
    return pages.get(target)?.includes(` id="${anchor}"`) ?? false;
  };
  return [...pages].flatMap(([page, text]) =>
    [...new Set(linksOf(page, text))]
      .filter((link) => !isThere(page, link))
      .map((link) => `${page}: ${link}`),
  );
}

function pathOf(page: string, link: string): string {
  const path = link.startsWith("/") ? link.slice(1) : join(dirname(page), link);
  return /(?:^|\/)\.?$/.test(path) ? join(path, "index.html") : path;
}

/** The links of a page within the site. */
function linksOf(page: string, text: string): string[] {
  const found = page.endsWith(".html")
    ? text.matchAll(/ (?:href|src)="([^"]*)"/g)
    : text
        .replaceAll(/^ *```.*?^ *```$/gms, "")
        .replaceAll(/`[^`\n]*`/g, "")
        .matchAll(/\]\(([^)\s]+)\)/g);
  return Array.from(found, ([, link = ""]) => decodeURI(link)).filter(
    (link) => !/^(?:[a-z]+:|\/\/)/.test(link),
  );
}
