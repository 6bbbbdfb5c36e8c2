# A root of its own with systemd as process 1: this machine's files below, everything that is written in memory. Run by
# `unshare` with own mounts, processes, network and names. Arguments: an empty directory, and one whose files are to be
# in /srv/pages.
set -eu
here=$1 brought=$2

# A group of its own, so that systemd inside finds itself at the top and touches nobody else's.
mount -t tmpfs -o mode=0755,size=3g tmpfs "$here"
mkdir "$here/groups" "$here/written" "$here/scratch" "$here/root"
mount -t cgroup2 none "$here/groups"
mkdir "$here/groups/$PILOT_PAGES_GROUP"
echo 0 > "$here/groups/$PILOT_PAGES_GROUP/cgroup.procs"

mount -t overlay -o "lowerdir=/,upperdir=$here/written,workdir=$here/scratch" overlay "$here/root"
cd "$here/root"
rm -rf etc/pilot etc/systemd/system/pilot.service.d var/lib/pilot var/lib/private/pilot var/backups/pilot
# Only what the pages start is to run.
rm -rf etc/systemd/system/*.wants etc/systemd/system/*.requires
echo "127.0.0.1 localhost pilot.example" > etc/hosts
tr -d - < /proc/sys/kernel/random/uuid > etc/machine-id
mkdir -p old srv/pages
cp -r "$brought/." srv/pages

for directory in tmp var/tmp var/log; do
    mount -t tmpfs tmpfs "$directory"
done
mount -t tmpfs -o mode=0755 tmpfs run
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=0755 tmpfs dev
for device in null zero full random urandom tty; do
    touch "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
mount -t tmpfs tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ip link set lo up

# In a view of the groups that begins at our own.
exec unshare --cgroup sh -eu -c '
    mount -t cgroup2 none sys/fs/cgroup
    pivot_root . old
    cd /
    umount --lazy old
    # As on a real machine; without it, what systemd mounts for a service is not seen there.
    mount --make-rshared /
    exec env --ignore-environment container=pilot-pages PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        /lib/systemd/systemd --unit=multi-user.target --log-target=journal --show-status=0
'
