/** Reads server-sent events from the body of a response. */

/** Frame with its event name and parsed data. */
export interface Frame {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: unknown;
}

/** Reads the frames of a body until it ends. Comments are skipped. */
export async function* readFrames(body: ReadableStream<Uint8Array>): AsyncGenerator<Frame, undefined, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let fields: Record<string, string> = {};
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const lines = rest.split("\n");
      // A line without its end is not a line yet; a body that ends in the middle of a frame has no such frame.
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const frame = line === "" ? toFrame(fields) : undefined;
        if (line === "") fields = {};
        else addField(fields, line);
        if (frame !== undefined) yield frame;
      }
      if (done) return undefined;
    }
  } finally {
    await reader.cancel().catch(ignoreCancelError);
  }
}

function addField(fields: Record<string, string>, line: string): void {
  const colon = line.indexOf(":");
  if (colon <= 0) return;
  const name = line.slice(0, colon);
  const value = line.slice(colon + 1).replace(/^ /, "");
  fields[name] = name === "data" && fields["data"] !== undefined ? `${fields["data"]}\n${value}` : value;
}

function toFrame({ id, event = "message", data }: Record<string, string>): Frame | undefined {
  return data === undefined ? undefined : { id, event, data: JSON.parse(data) };
}

function ignoreCancelError(): void {
  // The connection has failed already: reading it reported that.
}
