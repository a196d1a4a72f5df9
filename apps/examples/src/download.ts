/** Download: passes the signal to the request, so that a cancelled tool call closes its socket. */
import { defineTool, ToolError } from "statewright";
import * as z from "zod";

export const download = defineTool({
  name: "download",
  label: "Download File",
  description: "Download a web address and report its size.",
  input: z.object({ url: z.url({ protocol: /^https?$/ }).describe("Web address, http or https") }),
  effect: "pure",
  safety: { access: "read", network: true },
  run: async ({ url }, { signal, update }) => {
    signal.throwIfAborted();
    const response = await fetch(url, { signal });
    if (!response.ok) throw ToolError.failed(`${url} answered ${response.status}.`);
    let size = 0;
    for await (const part of response.body ?? []) {
      size += part.byteLength;
      update?.({ content: `${size} bytes so far`, details: { size } });
    }
    return { content: `Downloaded ${size} bytes from ${url}`, details: { size } };
  },
});
