#!/bin/bash
# One run as a Slurm job: driven until it is over, given back and started again whenever the driver ends with 75.
#SBATCH --job-name={{name}}
#SBATCH --dependency=singleton
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@120

told='' driver=''
trap 'told=yes; [ -z "$driver" ] || kill -TERM "$driver"' TERM
said=$(mktemp) || exit 1
trap 'rm -f -- "$said"' EXIT

{{runnerd}} drive {{remote}} --run {{run}} --yes{{options}} >"$said" &
driver=$!
[ -z "$told" ] || kill -TERM "$driver"
# A signal ends the waiting and not the driver.
while :; do
    told=''
    wait "$driver"
    code=$?
    [ -n "$told" ] || break
done
cat "$said"
[ "$code" -eq 75 ] || exit "$code"

# The driver says until when it is of no use to start it again. Slurm ends what it requeues, some time after; a job that is
# to start in that second fails, so that a time that is about to pass is left to Slurm's own delay.
trap '' TERM
when=$(sed -n 's/^not before //p' "$said" | tail -n 1)
if scontrol requeue "$SLURM_JOB_ID" && [ -n "$when" ] && [ "$(date -d "$when" +%s)" -gt "$(date -d '+10 seconds' +%s)" ]; then
    scontrol update JobId="$SLURM_JOB_ID" StartTime="$(date -d "$when" +%Y-%m-%dT%H:%M:%S)"
fi
exit 75
