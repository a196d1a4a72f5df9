/** Where lines touch one side of a box: as straight ahead as they can, with some room between them. */

/** A line that touches the side; `wish` is where it would go straight, `fixed` where it must. */
export interface PortWish {
  readonly key: string;
  readonly wish: number;
  readonly fixed: number | undefined;
}

const room = 16;

/** A place for each line between `from` and `to`, in the order of their wishes. */
export function spreadPorts(wishes: readonly PortWish[], from: number, to: number): ReadonlyMap<string, number> {
  const ports = new Map<string, number>();
  for (const { key, fixed } of wishes) if (fixed !== undefined) ports.set(key, fixed);
  const free = wishes.filter(({ fixed }) => fixed === undefined).toSorted((one, other) => one.wish - other.wish);
  const gap = Math.min(room, (to - from) / Math.max(1, free.length - 1));
  const at = free.map(({ wish }) => Math.min(to, Math.max(from, wish)));
  for (let index = 1; index < at.length; index++) at[index] = Math.max(at[index] ?? 0, (at[index - 1] ?? 0) + gap);
  const last = at.length - 1;
  if (last >= 0) at[last] = Math.min(to, at[last] ?? 0);
  for (let index = last - 1; index >= 0; index--) at[index] = Math.min(at[index] ?? 0, (at[index + 1] ?? 0) - gap);
  free.forEach(({ key }, index) => {
    ports.set(key, at[index] ?? from);
  });
  return ports;
}
