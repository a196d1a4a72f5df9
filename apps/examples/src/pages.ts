/** Page fetching: emits one partial result per page. */
import { defineTool } from "statewright";
import * as z from "zod";

export const fetchPages = defineTool({
  name: "fetch_pages",
  label: "Fetch Pages",
  description: "Fetch several web pages in order, and report the length of each page.",
  input: z.object({ urls: z.array(z.url({ protocol: /^https?$/ })).describe("Web addresses, http or https") }),
  effect: "pure",
  safety: { access: "read", network: true },
  run: async ({ urls }, { signal, update }) => {
    const pages: { readonly url: string; readonly length: number }[] = [];
    for (const [index, url] of urls.entries()) {
      update?.({ content: `[${index + 1}/${urls.length}] fetching ${url}…`, details: { done: index } });
      const text = await (await fetch(url, { signal })).text();
      pages.push({ url, length: text.length });
    }
    const lines = pages.map(({ url, length }) => `${url}: ${length} characters`);
    return { content: lines.join("\n"), details: { pages } };
  },
});
