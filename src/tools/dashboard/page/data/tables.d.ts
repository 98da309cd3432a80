// What assets.ts makes of the tables in src/nouns: the page can import nothing of ours.

export const NUMBERS: Readonly<Record<string, { readonly label: string; readonly unit: string }>>;

export const PLACES: Readonly<
  Record<
    string,
    {
      readonly label: string;
      readonly meaning: string;
      readonly number: string;
      readonly order?: string;
      readonly verbs: readonly string[];
    }
  >
>;
