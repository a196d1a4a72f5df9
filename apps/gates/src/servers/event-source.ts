/** Reader of server-sent events over fetch. */

/** Event of a stream. */
export interface SourceEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: string;
}

/** Yields the events of a response, until it ends. Throws when its connection breaks. */
export async function* readEvents(response: Response): AsyncGenerator<SourceEvent, undefined, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body ?? []) {
    rest += decoder.decode(chunk, { stream: true });
    const blocks = rest.split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const event = parseEvent(block);
      if (event !== undefined) yield event;
    }
  }
  return undefined;
}

function parseEvent(block: string): SourceEvent | undefined {
  let id: string | undefined;
  let event = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const at = line.indexOf(": ");
    if (at <= 0) continue;
    const value = line.slice(at + 2);
    if (line.startsWith("id: ")) id = value;
    else if (line.startsWith("event: ")) event = value;
    else if (line.startsWith("data: ")) data.push(value);
  }
  return data.length === 0 ? undefined : { id, event, data: data.join("\n") };
}
