// Written by scripts/embed.ts from page/ and vendor/. Change those.

/** A file of the page. */
export interface Asset {
  readonly type: string;
  /** Changes with the contents. */
  readonly tag: string;
  readonly text: string;
}

/** The package's version. */
export const VERSION = "0.1.0";

/** The files of the page, by the path at which they are served. */
export const ASSETS: Readonly<Record<string, Asset>> = {
};
